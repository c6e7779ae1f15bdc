// Package watch tells callers what is committed, while it happens. There is a feed for each workflow or instance that
// somebody watches; the store's goroutine puts entries into it, and never waits for a watcher. One that falls behind
// what is kept reads on in the store: of an instance in its history, of a workflow in the feed of package changefeed;
// what neither has, it is told as lost. Rights are asked again for each entry, and who the caller is before each event.
// When Watch has told Opened, every entry that is acknowledged from then on comes or is told as lost, also when another
// watch goes on behind its last event.
package watch
