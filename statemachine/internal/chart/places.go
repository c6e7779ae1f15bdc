package chart

import (
	"troupe/statemachine/expr"
)

// Places says where a definition's parts stand, for anyone who asks why a step failed.
type Places struct {
	File     string
	Programs map[*expr.Program]int // lines
	Actions  map[*Action]int       // those of elements of the lists that run
}

// NewPlaces are those of a file of which nothing was read yet.
func NewPlaces(file string) Places {
	return Places{file, map[*expr.Program]int{}, map[*Action]int{}}
}
