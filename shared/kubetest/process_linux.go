package kubetest

import "syscall"

// diesWithUs has the kernel end the server when the test's process ends without cleaning up.
func diesWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
