package apcore

import (
	"context"
	"log/slog"
	"runtime/debug"
)

// Go runs a part of a module in a goroutine of its own, so that what goes wrong
// there is an error of the module and not the end of the process: a panic, and a
// goroutine that ends itself, become MODULE_EXECUTE_ERROR with the module's id
// and call chain (apcore §8.3). The panic's text stays here, its stack is logged.
//
// wait blocks until work has ended and returns its error; it may be called often
// and by several goroutines. A module that returns without waiting leaves work
// running; its failure is then only logged if it is a panic. ctx is handed to
// work as it is: pass the one that Execute was given, for it ends with the call.
func (c *Context) Go(ctx context.Context, work func(ctx context.Context) error) (wait func() error) {
	ended := make(chan struct{})
	err := c.goroutineError("ended its goroutine")
	go func() {
		defer close(ended)
		defer func() {
			if cause := recover(); cause != nil {
				c.logger().Error("apcore: goroutine of a module panicked", "module_id", c.moduleID(), "trace_id", c.traceID, "panic_type", typeName(cause), "stack", string(debug.Stack()))
				err = c.goroutineError("panicked in a goroutine with a " + typeName(cause))
			}
		}()
		err = work(ctx)
	}()
	return func() error {
		<-ended
		return err
	}
}

func (c *Context) goroutineError(what string) error {
	e := NewError(CodeModuleExecuteError, "module %q %s", c.moduleID(), what).
		WithDetail("module_id", c.moduleID()).WithDetail("call_chain", anySlice(c.chain))
	e.TraceID = c.traceID
	return e
}

// moduleID is the module that this context belongs to, empty at the top.
func (c *Context) moduleID() string {
	if len(c.chain) == 0 {
		return ""
	}
	return c.chain[len(c.chain)-1]
}

func (c *Context) logger() *slog.Logger {
	if executor := c.Executor(); executor != nil {
		return executor.logger
	}
	return slog.Default()
}
