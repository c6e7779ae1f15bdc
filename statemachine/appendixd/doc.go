// Package appendixd holds statemachine against a second interpreter, written from the pseudo-code of W3C SCXML
// (Recommendation of 1 September 2015), Appendix D, procedure by procedure and under the names of the Recommendation.
// It shares no code with statemachine but the reader of YAML; deviation_test.go alone knows where our definitions deviate
// from SCXML. All of it is test files. See statemachine/DESIGN.md, "How the semantics are checked".
package appendixd
