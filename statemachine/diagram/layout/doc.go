// Package layout places the nodes of one directed graph in layers, from the top down, and routes its edges between
// them: the method of Sugiyama, Tagawa and Toda (1981), in whole pixels.
//
//	Orient ──► Graph.Place: rank ──► chain ──► order ──► spread ──► attach ──► route
//
// Orient says which edges lead upwards, so that the others have no cycle. Place gives each node a layer (rank), puts a
// bend or the label of an edge into each layer that the edge passes (chain), orders the layers with few crossings
// (order), finds horizontal places (spread), moves the ends of edges along the borders of nodes until they are straight
// (attach), and gives each horizontal piece of an edge a track of its own between two layers (route).
//
// Labels have a place of their own in a layer, so no label covers a node or another
// label. Edges run beside nodes and through no label but their own.
//
// A node can be pinned to the top or the bottom border: where an edge enters or leaves the graph that is placed. All
// arithmetic is on integers, so that the same graph gives the same pixels on every machine.
package layout
