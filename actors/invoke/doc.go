// Package invoke asks, before a child is created, whether its parent may have it: by the rules of both workflows, and
// by how many instances of their tree run. A tree is an instance that nobody has invoked, its root, with all that it,
// and they, have invoked. The count is not stored: who runs is what the records of the tree say, so nothing can get
// lost or counted twice; the node that leads the root remembers who was let in since it has read them (DESIGN.md).
package invoke
