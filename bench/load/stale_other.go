//go:build !linux

package load

// stale is not known here: a request on a connection that was ended meanwhile is an error.
func (c *connection) stale() bool { return false }
