// Package xstate reads and writes machines of XState v5.
package xstate
