// Package comparison holds package statemachine against the interpreter of package appendixd, on random charts and
// events (statemachine/DESIGN.md, "How the semantics are checked").
//
//	c := comparison.Cases().Example(seed)        // a chart with a sequence of events and pauses
//	tally, err := comparison.Run(parser, c)      // an error is a *Difference
//
// A Case is drawn with rapid as a whole, before anything runs, so rapid can shrink it. Each case becomes a definition in YAML
// for package statemachine and a chart for package appendixd. Both take the same steps, and after each one all that can be
// seen of an instance must be the same. A definition that the parser refuses is counted, and not run.
package comparison
