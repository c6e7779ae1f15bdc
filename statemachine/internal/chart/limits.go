package chart

import (
	"errors"
	"fmt"

	"troupe/statemachine/data"
)

// MaxTemplateBytes bounds the value that a template builds, before its size is checked anywhere else.
const MaxTemplateBytes = 4 << 20

var ErrTemplateTooLarge = fmt.Errorf("a value would be larger than %d MiB", MaxTemplateBytes>>20)

// EmptyObject is the data of what brings none.
var EmptyObject = data.Value("{}")

// ErrNotSettable: see statemachine.ErrNotSettable.
var ErrNotSettable = errors.New("the definition lets nobody set it")
