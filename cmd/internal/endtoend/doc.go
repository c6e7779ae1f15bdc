// Package endtoend has only tests. They build the program, start it on a home
// folder of their own and ask it what a client would ask, over HTTP and on the
// command line. Nothing of the program is imported: what is held here is what
// somebody outside can see.
//
//	TestInterface…     every line of the interface's groups A and B, and what is
//	                   decided where the interface is silent
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
// The rows of the interface tables begin with the line that they hold, for
// example "interfaces B: POST create", "decisions B: First history entry" or
// "filter paging: limit"; "lists" and "forms" stand for what goes beyond the
// documents: the parameters and paths by which instances are listed and watched,
// and the form runtime.
// TestInterfaceIsCovered has the list of all lines and fails when one has no row.
//
// # Settings
//
//	TROUPE_TEST_TAGS    build tags for the program, beside those of the test
//	TROUPE_TEST_KILLS   how many kills TestKill makes
//	TROUPE_TEST_SEED    the seed of TestKill; each run prints its own
//
// # What is not held here
//
// What does not exist yet: publishing through an interface (409 AlreadyExists),
// and the page that fullPath leads to.
package endtoend
