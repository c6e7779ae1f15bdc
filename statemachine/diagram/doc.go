// Package diagram draws a statechart: as SVG with a layout of its own, and as text
// for Mermaid and Graphviz. An instance's positions are marked, and the way it came.
//
//	Definition.Chart ──► Picture ──┬─► SVG      scene (places) ──► svgWriter
//	history ──► Instance.Add ──┘   ├─► Mermaid
//	                               └─► DOT
//
// A picture is a pure function of its chart and its instance: the same input gives
// the same bytes on every machine. There is no clock, no file and no other program.
//
// A scene is made from the inside out. Each transition is a wire with an end at two nodes. First each compound node
// decides which wires lead upwards in it, which says whether a wire leaves a container at its upper or its lower
// border. Then the innermost containers are placed: package layout places the nodes of a compound one in layers, with a
// pinned point for each wire that crosses the border; regions of a parallel one stand side by side. A container that is
// placed is one box for the container around it, with the places at which wires come out.
//
// Every text is escaped, and no text ends its line or its quotes: names come from files of others. An SVG has no script
// and asks for nothing from elsewhere. DESIGN.md has the decisions, and what is promised of the places.
package diagram
