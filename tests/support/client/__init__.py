"""Declarations, trees and edits for tests of `roost.client`."""
