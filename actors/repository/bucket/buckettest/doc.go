// Package buckettest runs an S3-compatible object store for tests. It is gofakes3, within the process of the test and
// in memory, behind a door that knows its owner's signature.
//
// With the build tag versitygw it is a real server: a process of its own that keeps its buckets in a folder of the
// test. The folder server names its version; it is built on first use, in a module of its own, so that the program does
// not depend on it. That takes minutes of CPU; .ci/run does it, and go test does not.
package buckettest
