// Package endtoend has only tests. They build the program, start it on a home folder of their own and ask it what a
// client would ask, over HTTP and on the command line. Nothing of the program is imported: what is held here is what
// somebody outside can see.
//
//	TestInterface      each operation of the description once
//	TestReload         files that change under a running program
//	TestRestart        what was acknowledged, after an orderly end
//	TestDrain…         SIGTERM under load
//	TestKill…          SIGKILL under load, against a ledger of acknowledged answers
//	TestProvider…      signing in through an OpenID Connect provider
//	                   (cmd/internal/openid), with the build tag openid
//	TestOtherProcess…  the command line beside a running program and without one
//
// # How a rule is found again
//
// The rules of the interface are held by the tests of package gateway_test, which ask the same service in their own
// process. Package cmd/internal/treecheck demands a test for every rule.
//
// # Settings
//
//	TROUPE_TEST_KILLS   how many kills TestKill makes; the controls run with it only
//	TROUPE_TEST_SEED    the seed of TestKill; each run prints its own
package endtoend
