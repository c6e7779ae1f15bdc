// Package million builds a store with a million instances and measures what
// depends on their number.
//
// It uses the parts of the service below HTTP, in this process, and makes the
// instances the way users do: one create each, a part of them moved on by an
// event. The workflow is an order with two declared indexes. A store that stands
// in -dir already is used again if it has as many instances.
//
// It measures: events in the large store beside a small one that got as many; how
// long a start takes, also after the process was killed; queries by node, by index,
// sorted, counted and without an index; and the same queries while events arrive, and
// the events while queries run. A window is to be longer than some merges of flushed
// tables, which come every few seconds.
package million
