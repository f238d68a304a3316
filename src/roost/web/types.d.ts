// The shapes that scripts share. `tsc` reads them; no browser does.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;
type Amounts = Record<string, number>;

// The frame, and what a page gets from it.

interface View {
  filters: HTMLElement;
  main: HTMLElement;
  asked: () => URLSearchParams;
  /** Changes parameters of the address. */
  ask: (changes: Record<string, string | string[] | null>, replace?: boolean) => void;
  foot: (shown: Shown) => void;
  /** Aborted when the reader leaves the page. */
  signal: AbortSignal;
}

/** `show` draws the frame of the page. It returns what follows the address. */
interface Page {
  title: string;
  show: (view: View) => () => Promise<void>;
}

/** The address of exactly what is shown, the command that shows the same if there is one, the body if it is a POST. */
interface Shown {
  url: URL;
  command?: string;
  body?: unknown;
  note?: string;
}

/** An entry of the search box. */
interface Entry {
  text: string;
  kind: string;
  path: string;
}

interface Field {
  name: string;
  label: string;
  hint?: string;
  size?: number;
  choices?: [string, string][];
}

// Trees.

interface Named {
  uuid: string;
  name: string;
}

interface Inventory {
  total: number;
  reserved: number;
  min_unit: number;
  max_unit: number;
  step_size: number;
  allocation_ratio: number;
}

interface Provider extends Named {
  parent?: string;
  generation: number;
  traits: string[];
  aggregates: string[];
  inventories: Record<string, Inventory>;
  usages: Amounts;
  owner?: string;
}

interface Tree {
  providers: Provider[];
  sharing_providers: Provider[];
}

/** What a provider gives to a request or a consumer. */
interface Given {
  groups: string[];
  resources: Amounts;
  several: boolean;
}

interface Drawn {
  traits?: boolean;
  aggregates?: boolean;
  /** What stands at the end of the box of a uuid. */
  below?: Map<string, Child[]>;
  /** Draws the providers that give in green. */
  given?: Map<string, Given>;
  /** Uuids whose boxes are marked. */
  changed?: Set<string>;
  /** Only names and what is given. */
  small?: boolean;
}

// Cloud.

interface Sums {
  total: number;
  reserved: number;
  used: number;
  free: number;
  fits: number;
  over: number;
}

interface Root extends Named {
  total: number;
  reserved: number;
  used: number;
  free: number;
  fits: number | null;
  group: string | null;
  /** The group within the group. */
  second: string | null;
  /** Kinds of what the audit finds in the tree, if it was asked. */
  findings: Set<string>;
}

interface Group {
  title: string;
  roots: Root[];
  groups: Group[];
}

/** Cells of one group, as far as they exist. */
interface Block {
  element: HTMLElement;
  roots: Root[];
  first: number;
  short: (name: string) => string;
  columns: number;
  from: number;
  to: number;
  /** By their places. */
  cells: Map<number, HTMLElement>;
}

interface Cloud {
  roots: Root[];
  resourceClass: string;
  classes: string[];
  totals: Record<string, Amounts>;
  /** Of all roots that match. */
  count: number;
  exact: boolean;
  capacity: { fits: number; exact: boolean; at_most?: number } | null;
  next: string | null;
  cursor: string;
  findings: Map<string, Set<string>>;
}

// Ask.

interface Pair {
  key: string;
  value: string;
}

interface Candidate {
  allocations: Record<string, { resources: Amounts }>;
  mappings: Record<string, string[]>;
  alternatives?: Amounts;
}

interface Step {
  stage: string;
  providers?: number;
  trees: number;
  text: string;
}

interface Found {
  query: string;
  provider: string;
  candidates: any;
  explanation: any;
  capacity: any;
}

// Consumers.

interface Consumer {
  consumer: string;
  consumer_type: string;
  project_id: string;
  user_id: string;
  created_at: string;
  size: number;
  query?: string;
  resources: Amounts;
  allocations: { provider: Named; root: Named; resources: Amounts }[];
}

interface Finding {
  kind: string;
  text: string;
  consumer: string | null;
  provider: Named | null;
  mend: { method: string; path: string; body: unknown } | null;
}

// Changes.

interface Change {
  at: string;
  kind: string;
  provider: { uuid: string; name: string | null } | null;
  root: { uuid: string; name: string | null } | null;
  resource_classes: string[];
  request_id: string | null;
  user_id: string | null;
  project_id: string | null;
}

interface ChangePage {
  changes: Change[];
  /** The cursor after it. */
  next: string;
}
