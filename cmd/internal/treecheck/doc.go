// Package treecheck has only tests. They hold what a compiler does not: which
// package may import which, that every package says what it is for, calls that
// we do without, sizes, files that use each other in a circle, names, what stands
// at the top of the tree, that each citation leads to a document and a heading,
// and that each test that a text names is there.
//
// A check is a function from a tree to the faults in it. Each has a control
// beside it, which plants a violation in a small tree and demands that it is
// found. To change a rule, change its table and say why in the same line. The tables
// of what exceeds a bound today only shrink.
package treecheck
