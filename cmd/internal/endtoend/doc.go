// Package endtoend has only tests. They build the program, start it on a home
// folder of their own and ask it what a client would ask, over HTTP and on the
// command line. Nothing of the program is imported: what is held here is what
// somebody outside can see.
//
//	TestInterface…     the rules of gateway/INTERFACE.md and the language of filters
//	TestWrongInput…    every kind of wrong input, each with its status; then the
//	                   instances must be as before and the program must answer
//	TestDrain…         SIGTERM under load
//	TestKill…          SIGKILL under load, against a ledger of acknowledged answers
//	TestProvider…      signing in through an OpenID Connect provider, which runs as
//	                   a process of its own (cmd/internal/openid)
//	TestOtherProcess…  the command line beside a running program and without one
//
// # How a rule is found again
//
// Each row of the interface tables names the rule that it holds, by path and
// heading. Rules without a row here are held by the tests of the package that
// keeps them; package cmd/internal/treecheck demands one for every rule.
//
// # Settings
//
//	TROUPE_TEST_KILLS   how many kills TestKill makes
//	TROUPE_TEST_SEED    the seed of TestKill; each run prints its own
package endtoend
