// Package storetest has disks in memory that hang, fill up and lose power, for tests of what stands on a store. Its own tests
// are what no store may fail at: a harness that cuts the power, and a sweep of damaged files. A harness that cannot fail
// proves nothing, so each is also run against journals with a bug in them.
package storetest
