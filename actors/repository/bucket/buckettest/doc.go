// Package buckettest runs an S3-compatible object store for tests: versitygw, as
// a process of its own that keeps its buckets in a folder of the test. The folder
// server names its version; it is fetched and built on first use, in a module of
// its own, so that the program does not depend on it.
package buckettest
