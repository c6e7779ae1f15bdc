// Package treecheck has only tests. They hold what neither a compiler nor the linter does: which package may import which,
// package comments, sizes, circles of files, names, plain English, what stands at the top of the tree, and that every
// cited document, heading and test exists. Banned calls are in .golangci.yml.
//
// A check is a function from a tree to the faults in it. testdata/control has a file for each, which plants violations in
// small trees that must be found. To change a rule, change its table, such as testdata/arrows.txt, and say why in the same
// line. Tables of today's exceptions only shrink.
package treecheck
