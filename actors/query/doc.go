// Package query finds the instances of a workflow that match a filter: plan chooses an index, iterate gives candidates
// in order, evaluate asks the rights and then the filter, and yield is called in batches, without a slot meanwhile. A
// query sees one snapshot, and shows nothing of it before it is durable. It works only while it has a slot, keeps to
// its share of the machine while events need it, and gives way to other users every few milliseconds (throttle). A page
// ends with a cursor, a position in the list that stays valid over a restart. The same slots and batches serve the
// lists of forms (Rows) and the filters of watches that take long (Match).
package query
