package chart

import (
	"fmt"

	"troupe/statemachine/data"
)

// MaxTemplateBytes bounds the value that a template builds, before its size is
// checked anywhere else.
const MaxTemplateBytes = 4 << 20

var ErrTemplateTooLarge = fmt.Errorf("a value would be larger than %d MiB", MaxTemplateBytes>>20)

// EmptyObject is the data of what brings none.
var EmptyObject = data.Value("{}")
