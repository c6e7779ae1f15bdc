package leave

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel end the process when the thread that starts it ends, so
// that none is left behind by a program that was killed.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
}
