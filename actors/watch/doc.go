// Package watch tells callers what is committed, while it happens.
//
//	commit is durable ──► Feed ──► watcher ──► rights, filter ──► yield
//	                     newest     one for each
//	                     items      call of Watch
//
// There is a feed for each workflow or instance that somebody watches. The store's goroutine puts entries into it, and
// never waits for a watcher: each reads at its own position, and one that falls behind what is kept reads on in the
// store: of a single instance in its history, of a workflow in the feed of package changefeed. What neither has, it is
// told as lost. Rights are asked again for each entry, and who the caller is before each event.
//
// When Watch has told Opened, every entry that is acknowledged from then on comes or is told as lost; also when the
// watch ends and another one goes on behind its last event, after a restart or on another node.
package watch
