package ecmascript

import "errors"

// errSyntax: the text is no expression of ECMAScript.
var errSyntax = errors.New("not an expression of ECMAScript")

// Refused is what an expression has that cannot be expressed in CEL.
type Refused struct{ What string }

func (e *Refused) Error() string { return e.What + " cannot be expressed" }

func refuse(what string) error { return &Refused{what} }
