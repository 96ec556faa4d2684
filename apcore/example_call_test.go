package apcore_test

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// need ends an example that cannot go on.
func need(err error) {
	if err != nil {
		panic(err)
	}
}

// serve makes an executor with one module, as the examples need it.
func serve[In, Out any](opts apcore.ExecutorOptions, id string, spec apcore.Spec, fn func(context.Context, In) (Out, error)) *apcore.Executor {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	need(apcore.Register(registry, id, fn, spec))
	executor, err := apcore.NewExecutor(registry, opts)
	need(err)
	return executor
}

// deletion is a module that can say beforehand what it would do.
type deletion struct{ *apcore.FuncModule }

func (deletion) Preflight(_ context.Context, inputs map[string]any, _ *apcore.Context) ([]string, error) {
	return []string{fmt.Sprint("nobody has read ", inputs["path"], " since 2019")}, nil
}

func (deletion) Preview(_ context.Context, inputs map[string]any, _ *apcore.Context) ([]apcore.Change, error) {
	return []apcore.Change{{Action: "delete", Target: fmt.Sprint(inputs["path"]), Summary: "one file goes"}}, nil
}

// Validate checks a call without making it: every check is reported, the module
// says what it would do, and nobody is asked for approval.
func ExampleExecutor_Validate() {
	inner, err := apcore.NewFunc(func(context.Context, struct {
		Path string `json:"path"`
	}) (struct{}, error) {
		fmt.Println("never printed: the module does not run")
		return struct{}{}, nil
	}, apcore.Spec{Description: "Deletes a file", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}})
	need(err)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	need(registry.Register("files.delete", deletion{inner}, apcore.RegisterOptions{}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	need(err)
	for _, inputs := range []map[string]any{{"path": "/tmp/a"}, {"path": 7}} {
		result := executor.Validate(context.Background(), "files.delete", inputs, nil)
		fmt.Println("valid:", result.Valid, "needs approval:", result.RequiresApproval)
		for _, check := range result.Checks {
			if !check.Passed || len(check.Warnings) > 0 {
				fmt.Println(" ", check.Check, check.Passed, check.Warnings)
			}
		}
		for _, change := range result.PredictedChanges {
			fmt.Println("  would", change.Action, change.Target)
		}
	}
	// Output:
	// valid: true needs approval: true
	//   module_preflight true [nobody has read /tmp/a since 2019]
	//   would delete /tmp/a
	// valid: false needs approval: true
	//   schema false []
	//   module_preflight true [nobody has read 7 since 2019]
	//   would delete 7
}

// writer streams a text word by word.
type writer struct{ *apcore.FuncModule }

func (writer) Stream(_ context.Context, _ map[string]any, _ *apcore.Context) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		for i, word := range []string{"once", "upon", "a"} {
			if !yield(map[string]any{"word": word, "words": i + 1}, nil) {
				return
			}
		}
		yield(nil, apcore.NewError("WRITER_TIRED", "no more words"))
	}
}

// Stream hands out chunks as the module makes them; the last pair may be an
// error. Everything before the module happens once, before the first chunk.
func ExampleExecutor_Stream() {
	inner, err := apcore.NewFunc(func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"word": "once"}, nil
	}, apcore.Spec{Description: "Writes a story", Annotations: apcore.Annotations{Streaming: true}})
	need(err)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	need(registry.Register("story.write", writer{inner}, apcore.RegisterOptions{}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	need(err)
	for chunk, err := range executor.Stream(context.Background(), "story.write", nil, nil) {
		if err != nil {
			fmt.Println("failed:", apcore.CodeOf(err))
			break
		}
		fmt.Println(chunk["words"], chunk["word"])
	}
	// Output:
	// 1 once
	// 2 upon
	// 3 a
	// failed: WRITER_TIRED
}

// Cancelling a token ends the call and everything below it at once; no error hook
// brings it back.
func ExampleCancelToken() {
	token, started := apcore.NewCancelToken(), make(chan struct{})
	executor := serve(apcore.ExecutorOptions{}, "report.build", apcore.Spec{Description: "Builds a report"},
		func(ctx context.Context, _ struct{}) (string, error) {
			close(started)
			<-ctx.Done() // a module is told by its context
			return "", ctx.Err()
		})
	go func() {
		<-started
		token.Cancel()
	}()
	caller := apcore.NewContext(apcore.ContextOptions{CancelToken: token})
	_, err := executor.Call(context.Background(), "report.build", nil, caller)
	fmt.Println(err)
	// Output:
	// [EXECUTION_CANCELLED] Execution was cancelled
}

// A strategy is the order of steps: start from a preset, change it by its rules,
// give it to an executor.
func ExampleStrategy() {
	strategy, err := apcore.NewStrategy("internal") // without access rules and approval
	need(err)
	quota := apcore.Step{
		Name: "quota", Description: "bounds what one caller spends", Requires: []string{"module"},
		Run: func(_ context.Context, p *apcore.Pipeline) (apcore.StepResult, error) {
			if p.Inputs()["amount"] == 99 {
				return apcore.StepResult{Action: apcore.StepAbort, Explanation: "over the quota"}, nil
			}
			return apcore.StepResult{}, nil
		},
	}
	fmt.Println(strategy.InsertAfter("module_lookup", quota))
	slow := time.Second
	fmt.Println(strategy.Configure("execute", apcore.StepConfig{Timeout: &slow}))
	fmt.Println(strategy.Remove("execute"))
	executor := serve(apcore.ExecutorOptions{Strategy: strategy.Named("metered")}, "pay.send", apcore.Spec{Description: "Pays"},
		func(context.Context, map[string]any) (string, error) { return "paid", nil })
	fmt.Println(executor.DescribePipeline().Name, executor.DescribePipeline().StepNames[:4])
	for _, amount := range []int{1, 99} {
		output, trace, err := executor.CallWithTrace(context.Background(), "pay.send", map[string]any{"amount": amount}, nil)
		fmt.Println(output["result"], len(trace.Steps), err)
	}
	// Output:
	// <nil>
	// <nil>
	// [STEP_NOT_REMOVABLE] step "execute" cannot be removed
	// metered [context_creation call_chain_guard module_lookup quota]
	// paid 10 <nil>
	// <nil> 4 [PIPELINE_ABORT] step "quota" ended the call of module "pay.send": over the quota
}

// A module starts its goroutines through its context: what panics there is an
// error of the module, and the process lives.
func ExampleContext_Go() {
	executor := serve(apcore.ExecutorOptions{Logger: silent()}, "image.scale", apcore.Spec{Description: "Scales an image"},
		func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := apcore.FromContext(ctx)
			wait := c.Go(ctx, func(context.Context) error { panic("division by zero") })
			return "scaled", wait()
		})
	_, err := executor.Call(context.Background(), "image.scale", nil, nil)
	fmt.Println(err)
	// Output:
	// [MODULE_EXECUTE_ERROR] module "image.scale" panicked in a goroutine with a string
}
