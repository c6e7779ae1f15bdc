// Package parse turns the text of a definition into a chart: state machines, states, transitions and actions, with package clause for what
// stands in them and package check for what the whole must hold. It also reads plans of migration.
package parse
