// Package schema compiles JSON Schemas and asks them: whether a value fits and where it does not, what fields there are,
// and whether what one schema describes fits another. Every check has a bound on its cost, and nothing is ever fetched.
//
// It knows JSON and the library that it stands on, and nothing of workflows, forms or files with definitions.
package schema
