// Package admin is the unix socket of a home folder: what the command line asks
// of a running server.
//
//	troupe token create ─┐
//	troupe password set ─┴► Client ──► admin.sock ──► Server ──► identity
//
// Small JSON over HTTP, one request a connection. The socket's file mode is the
// only right that is checked: who may open it may read the store as well. So it
// answers with the whole text of an error, and shows a secret once, to whoever
// asked for it.
//
// Start replaces the file that a killed server left behind and refuses to
// replace one that answers. Stop answers what was accepted, then removes the
// file. A command whose Dial finds no server opens the store itself; when a
// call loses its server in the middle, the outcome is unknown.
//
// Paths of any length work on Linux, although the kernel takes 107 bytes.
package admin
