package process

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the process when the thread that starts it ends, so
// that none is left behind by a program that was killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true // NB: an interrupt from the keyboard is for the parent alone
}
