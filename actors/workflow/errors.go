package workflow

import "errors"

// errAsleep: the instance was put to sleep between looking it up and asking it;
// the router looks again. It never leaves the package.
var errAsleep = errors.New("instance is asleep")
