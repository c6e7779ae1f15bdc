// Package bucket is a repository.Source over a bucket of an S3-compatible object
// store, read-only. The key of an object, behind a prefix, is the path of a file;
// what stands between slashes is a folder, which exists as long as something is in
// it.
//
//	List  ──► ListObjectsV2 with a delimiter: one folder
//	Open  ──► GetObject; the content is what it was then
//	Watch ──► ListObjectsV2 without, now and then: what has changed since List
//
// An object store tells of no changes, so Watch looks: it goes through all keys,
// a thousand a request, and compares each folder with what List last said of it.
//
// The errors are those of repository.Source. What is neither there nor missing,
// because the store cannot be reached, refuses the keys or has no such bucket, is
// failure.ErrUnavailable: it may be tried again.
package bucket
