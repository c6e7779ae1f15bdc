// Package invoke asks, before a child is created, whether its parent may have it: by the rules of both workflows, and by how many instances
// of their tree run. A tree is an instance that nobody has invoked, its root, with all that it, and they, have invoked.
//
//	node of the parent ── Prepare ──► node of the root: Join ── counted ──► let in, or refused: one incident at the root
//	       │ Start, with what was found
//	       ▼
//	node of the child ── May ──► created, or error.invoke
//
// The count is not stored. Who runs is what the records of the tree say, so nothing can get lost or counted twice, whatever crashes; the
// node that leads the root remembers who was let in since it has read them (DESIGN.md).
package invoke
