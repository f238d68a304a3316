"""What the service counts: metrics of all processes of a server, and the text that shows them."""
