// Package diagram draws a statechart, as SVG with a layout of its own and as text for Mermaid and Graphviz, with an
// instance's positions and the way that it came. A picture is a pure function of its chart and its instance: the same input
// gives the same bytes. A scene is made from the inside out: each transition is a wire between two nodes; package layout
// places what is in the innermost containers, and a container that is placed is one box for the one around it. Every text
// is escaped: names come from files of others. DESIGN.md has the decisions and what is promised of the places.
package diagram
