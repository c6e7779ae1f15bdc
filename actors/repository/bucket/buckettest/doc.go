// Package buckettest runs an S3-compatible object store for tests: gofakes3, in memory, behind a door that knows its
// owner's signature. With the build tag versitygw it is a real server, a process of its own that is built on first use
// in a module of its own; that takes minutes of CPU, so .ci/run does it, and go test does not.
package buckettest
