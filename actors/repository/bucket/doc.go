// Package bucket is a repository.Source over a bucket of an S3-compatible object store, read-only. The key of an
// object, behind a prefix, is the path of a file; the parts before its slashes are folders, which exist as long as
// something is in them. An object store tells of no changes, so Watch polls: it goes through all keys, a thousand a
// request, and compares each folder with what List last showed of it. When the store cannot be reached, refuses the
// keys or has no such bucket, the error is failure.ErrUnavailable.
package bucket
