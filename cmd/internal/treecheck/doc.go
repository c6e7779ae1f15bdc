// Package treecheck has only tests. They hold what a compiler does not: which package may import which, package
// comments, banned calls, sizes, circles of files, names, plain English, what stands at the top of the tree, and that
// every cited document, heading and test exists.
//
// A check is a function from a tree to the faults in it. Beside each stands a control, which plants a violation in a
// small tree and must find it. To change a rule, change its table and say why in the same line. Tables of today's
// exceptions only shrink.
package treecheck
