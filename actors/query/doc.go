// Package query finds the instances of a workflow that match a filter.
//
//	Request ─► plan ──► iterate ──► evaluate ──► yield
//	           which     candidates   rights, then  in batches, without
//	           index     in order     the filter    a slot meanwhile
//
// A query sees one snapshot, and shows nothing of it before it is durable. It works only while it has a slot, keeps to
// its share of the machine while events need it, and gives way to other users every few milliseconds (throttle). A page
// ends with a cursor, which is a position in the list and stays valid over a restart.
//
// The same slots and batches serve the lists of forms (Rows) and the filters of watches that take long (Match). Nothing
// here changes the store.
package query
