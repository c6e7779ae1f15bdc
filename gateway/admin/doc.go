// Package admin is the unix socket of a home folder: what the command line asks of a running server.
//
//	troupe token create ─┐
//	troupe password set ─┴► Client ──► admin.sock ──► Server ──► identity
//
// It is small JSON over HTTP, one request for each connection. The socket's file mode is the only right that is checked:
// whoever may open it may read the store as well. So it answers with the whole text of an error, and shows a secret
// once. A command whose Dial finds no server opens the store itself; when a call loses its server, the outcome is unknown.
package admin
