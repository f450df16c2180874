"""Inputs of all kinds for every public function, drawn by hypothesis, and what must hold whatever the input is.

`strategies` draws arrays, `areas` draws calls of public functions, `invariants` says what must hold of results, and
`case` makes a call under watch. `planted` has faults, each of which some property must find.
"""
