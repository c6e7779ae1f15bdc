// Package layout places the nodes of one directed graph in layers, from the top down, and routes its edges between them:
// the method of Sugiyama, Tagawa and Toda (1981) on integers, so that the same graph gives the same pixels on every machine.
//
//	Orient ──► Graph.Place: rank ──► chain ──► order ──► spread ──► attach ──► route
//
// Orient says which edges lead upwards. Labels have a place of their own in a layer, so that no label covers a node or
// another label. A node can be pinned to the border where an edge enters or leaves the graph.
package layout
