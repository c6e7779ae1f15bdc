// Package endtoend has only tests. They start themselves as the program, on a home folder of their own, and ask it what a
// client would ask, over HTTP and on the command line. The rules of the interface are held by the tests of package
// gateway_test; here is what needs a process: reloading, restarting, draining, killing, signing in through a provider
// (build tag openid), and the command line beside a running program. TROUPE_TEST_KILLS says how many kills TestKill
// makes, -episodes how often TestAClusterUnderFaults hurts its cluster; TROUPE_TEST_SEED is the seed of both, else 1.
package endtoend
