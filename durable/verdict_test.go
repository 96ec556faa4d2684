package durable_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// declaredCodes reads every constant of type Code out of a source file.
func declaredCodes(t *testing.T, path string) []apcore.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	must(t, err)
	var codes []apcore.Code
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			must(t, err)
			codes = append(codes, apcore.Code(text))
		}
		return true
	})
	return codes
}

// Target 25, pitfall 20: every code that the sources declare, the standard's and
// this layer's, has its row and no row is for nothing. A code that the standard
// calls retryable or not has the same verdict here, but for those that stay final
// within a call.
func TestEveryCodeHasAVerdict(t *testing.T) {
	standard, ours := declaredCodes(t, "../apcore/code.go"), declaredCodes(t, "code.go")
	if len(standard) < 78 || len(ours) < 22 {
		t.Fatalf("found only %d and %d codes: the sources have another form now", len(standard), len(ours))
	}
	declared := append(slices.Clone(standard), ours...)
	slices.Sort(declared)
	var listed []apcore.Code
	for _, verdict := range durable.Verdicts() {
		listed = append(listed, verdict.Code)
	}
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("codes and the rows of durable/verdict.go (-declared +rows):\n%s", diff)
	}
	slices.Sort(ours)
	if diff := cmp.Diff(ours, durable.Codes()); diff != "" {
		t.Errorf("this layer's codes (-declared +listed):\n%s", diff)
	}
	for _, verdict := range durable.Verdicts() {
		want := map[string]durable.Repeat{"unset": durable.RepeatByClass, "true": durable.RepeatYes, "false": durable.RepeatNo}[flagOf(verdict.Code)]
		if verdict.Repeat != want && verdict.Repeat != durable.RepeatNever {
			t.Errorf("%s is %q, the standard has it %s", verdict.Code, verdict.Repeat, flagOf(verdict.Code))
		}
		if !verdict.Code.IsFramework() && verdict.Repeat != durable.RepeatNever {
			t.Errorf("%s is this layer's own and %q: each needs somebody to act first", verdict.Code, verdict.Repeat)
		}
	}
	for _, code := range []apcore.Code{apcore.CodeApprovalDenied, apcore.CodeApprovalPending, apcore.CodeApprovalTimeout, apcore.CodeACLDenied, apcore.CodeExecutionCancelled} {
		if durable.VerdictOf(code).Repeat != durable.RepeatNever {
			t.Errorf("%s may be repeated", code)
		}
	}
	if got := durable.VerdictOf("ACME_FROM_THE_FUTURE"); got.Repeat != durable.RepeatByClass {
		t.Errorf("an unknown code: %+v", got)
	}
}

func flagOf(code apcore.Code) string {
	if flag := code.DefaultRetryable(); flag != nil {
		return strconv.FormatBool(*flag)
	}
	return "unset"
}

// attempt makes one attempt of a module that has these annotations and fails.
func attempt(t *testing.T, annotations apcore.Annotations, failure error) *durable.Failure {
	t.Helper()
	w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}})
	must(t, apcore.Register(w.registry, "acme.fails", func(context.Context, struct{}) (map[string]any, error) { return nil, failure },
		apcore.Spec{Description: "Fails as told", Annotations: annotations}))
	_, err := w.invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: "acme.fails", Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/w/1"}, 1)
	var found *durable.Failure
	if !errors.As(err, &found) {
		t.Fatalf("error %v is no failure", err)
	}
	return found
}

// retriedFailures tells for one row of annotations what becomes of failures of the
// module itself, and of the same failures before it starts.
func retriedFailures(t *testing.T, annotations *apcore.Annotations) string {
	t.Helper()
	says := map[bool]string{true: "yes", false: "no"}
	if annotations == nil {
		return "MODULE_NOT_FOUND -/" + says[attemptBefore(t, nil, nil).Retry]
	}
	var parts []string
	for _, test := range []struct {
		name string
		err  error
	}{
		{"unset", apcore.NewError(apcore.CodeModuleExecuteError, "x")},
		{"true", apcore.NewError("ACME_BUSY", "x").WithRetryable(new(true))},
		{"false", apcore.NewError("ACME_BAD", "x").WithRetryable(new(false))},
		{"timeout", apcore.NewError(apcore.CodeModuleTimeout, "x")},
		{"denied", apcore.NewError(apcore.CodeACLDenied, "x").WithRetryable(new(true))},
	} {
		parts = append(parts, fmt.Sprintf("%s %s/%s", test.name, says[attempt(t, *annotations, test.err).Retry], says[attemptBefore(t, annotations, test.err).Retry]))
	}
	return strings.Join(parts, ", ")
}

// refuses fails a call before its module starts.
type refuses struct {
	apcore.BaseMiddleware
	err error
}

func (r refuses) Before(context.Context, *apcore.MiddlewareCall) (map[string]any, error) {
	return nil, r.err
}

func attemptBefore(t *testing.T, annotations *apcore.Annotations, failure error) *durable.Failure {
	t.Helper()
	w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: apcore.AutoApprove{}, Middleware: []apcore.Middleware{refuses{err: failure}}})
	if annotations != nil {
		must(t, apcore.Register(w.registry, "acme.refused", func(context.Context, struct{}) (map[string]any, error) {
			t.Error("the module ran")
			return nil, nil
		}, apcore.Spec{Description: "Never runs", Annotations: *annotations}))
	}
	_, err := w.invoker.Invoke(t.Context(), durable.CallRequest{V: 1, ModuleID: "acme.refused", Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/w/1"}, 1)
	var found *durable.Failure
	if !errors.As(err, &found) || !found.NotStarted {
		t.Fatalf("error %v is no failure before the start", err)
	}
	return found
}

// The verdict of each code holds for each class, with and without a word of the
// error's own: what may have started is repeated only if the class repeats.
func TestVerdictsHold(t *testing.T) {
	for _, verdict := range durable.Verdicts() {
		if verdict.Code == apcore.CodeApprovalPending {
			continue // ends as NESTED_APPROVAL_PENDING, see there
		}
		for flag, own := range map[string]*bool{"unset": nil, "true": new(true), "false": new(false)} {
			e := apcore.NewError(verdict.Code, "x").WithRetryable(own)
			want := verdict.Repeat != durable.RepeatNever && verdict.Repeat != durable.RepeatNo
			if own != nil && verdict.Repeat != durable.RepeatNever {
				want = *own
			}
			for class, annotations := range map[string]apcore.Annotations{"safe": {Readonly: true}, "idempotent": {Idempotent: true}, "at most once": {}} {
				got := attempt(t, annotations, e)
				if got.NotStarted || got.Retry != (want && class != "at most once") {
					t.Errorf("%s of a %s module, flag %s: %+v, want retry %t", verdict.Code, class, flag, got, want)
				}
			}
			if got := attemptBefore(t, &apcore.Annotations{}, e); got.Retry != want {
				t.Errorf("%s before the start, flag %s: %+v, want retry %t", verdict.Code, flag, got, want)
			}
		}
	}
}

// hinted is a foreign error that knows when to come back.
type hinted struct{ after time.Duration }

func (h hinted) Error() string             { return "busy" }
func (h hinted) RetryAfter() time.Duration { return h.after }

// Target 28: a module's wish for the next attempt arrives, however it is said and
// wrapped, and is capped; it makes nothing retryable.
func TestRetryAfterArrives(t *testing.T) {
	busy := apcore.NewError("ACME_BUSY", "busy")
	for _, test := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"option of the error", busy.WithRetryAfter(7 * time.Second), 7 * time.Second},
		{"detail", busy.WithDetail("retry_after_ms", 7000), 7 * time.Second},
		{"detail with a fraction", busy.WithDetail("retry_after_ms", 0.5), time.Millisecond},
		{"interface", hinted{7 * time.Second}, 7 * time.Second},
		{"interface, wrapped and joined", fmt.Errorf("x: %w", errors.Join(errors.New("y"), hinted{7 * time.Second})), 7 * time.Second},
		{"interface as the cause", busy.WithCause(hinted{7 * time.Second}), 7 * time.Second},
		{"interface beside the error", errors.Join(hinted{7 * time.Second}, busy), 7 * time.Second},
		{"below a millisecond", busy.WithRetryAfter(time.Nanosecond), time.Millisecond},
		{"too long", busy.WithRetryAfter(time.Hour), durable.DefaultMaxRetryAfter},
		{"far too long", busy.WithDetail("retry_after_ms", 1e300), durable.DefaultMaxRetryAfter},
		{"negative", busy.WithDetail("retry_after_ms", -1), 0},
		{"text", busy.WithDetail("retry_after_ms", "7s"), 0},
		{"none", busy, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := attempt(t, apcore.Annotations{Readonly: true}, test.err)
			if got.RetryAfter != test.want || !got.Retry {
				t.Errorf("%+v, want after %v", got, test.want)
			}
			if again := durable.FailureFromMap(got.Map()); again.RetryAfter != test.want {
				t.Errorf("over the wire %v, want %v", again.RetryAfter, test.want)
			}
			if once := attempt(t, apcore.Annotations{}, test.err); once.Retry {
				t.Error("a wish made a module repeat that runs at most once")
			}
		})
	}
}
