//go:build !linux

package process

import "os/exec"

// endWithParent does nothing: only Linux has it.
func endWithParent(*exec.Cmd) {}
