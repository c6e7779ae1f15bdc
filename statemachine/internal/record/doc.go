// Package record has a workflow instance as plain data, and the form in which it is stored: what it holds, the nodes where it stands, and
// its timers, tasks, children and parent. It refers to the compiled chart and takes no step.
package record
