// Package transit says which nodes transitions leave and enter, and which of them cannot be taken together: the sets of W3C SCXML,
// Appendix D. It runs no action.
package transit
