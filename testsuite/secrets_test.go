package testsuite_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

const canary = `canary/"4242"-ü?&`

func recorded() *historypb.History {
	return &historypb.History{Events: []*historypb.HistoryEvent{
		{EventId: 1, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				Input:  &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(`"fine"`)}, {Data: []byte(`{"card":` + quote(canary) + `}`)}}},
				Header: &commonpb.Header{Fields: map[string]*commonpb.Payload{"apcore-context": {Data: []byte(base64.StdEncoding.EncodeToString([]byte("x" + canary + "y")))}}},
			},
		}},
		{EventId: 2, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
				Message: "no", Cause: &failurepb.Failure{Message: "cannot charge " + canary},
			}},
		}},
	}}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func TestFindSecrets(t *testing.T) {
	want := []string{
		"1 WorkflowExecutionStarted input.payloads[1].data",
		`1 WorkflowExecutionStarted header.fields["apcore-context"].data`,
		"2 WorkflowExecutionFailed failure.cause.message",
	}
	if diff := cmp.Diff(want, testsuite.FindSecrets(recorded(), "nowhere-to-be-found", canary)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if got := testsuite.FindSecrets(recorded(), "nowhere-to-be-found"); got != nil {
		t.Errorf("found %v", got)
	}
}

// Property: however a canary was written into a text, it is found.
func TestEveryFormIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[ -~äöü]{8,40}`).Draw(t, "secret")
		before, after := rapid.StringMatching(`[ -~]{0,9}`).Draw(t, "before"), rapid.StringMatching(`[ -~]{0,9}`).Draw(t, "after")
		whole := before + secret + after
		for form, text := range map[string]string{
			"plain": whole, "JSON": quote(whole), "base64": base64.StdEncoding.EncodeToString([]byte(whole)),
			"base64 of a URL": base64.URLEncoding.EncodeToString([]byte(whole)), "hex": fmt.Sprintf("%x", whole),
		} {
			if places := testsuite.FindSecrets(wrapperspb.String(text), secret); len(places) != 1 {
				t.Errorf("%s: found at %q in %q", form, places, text)
			}
		}
	})
}

// reported is a testing.TB that notes what it is told.
type reported struct {
	testing.TB
	errors, fatal []string
}

func (r *reported) Helper() {}

func (r *reported) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *reported) Fatal(args ...any) { r.stop(fmt.Sprint(args...)) }

func (r *reported) Fatalf(format string, args ...any) { r.stop(fmt.Sprintf(format, args...)) }

func (r *reported) stop(text string) {
	r.fatal = append(r.fatal, text)
	panic(r)
}

func require(canaries ...string) (r *reported) {
	r = &reported{}
	defer func() {
		if stopped := recover(); stopped != nil && stopped != any(r) {
			panic(stopped)
		}
	}()
	testsuite.RequireNoSecrets(r, recorded(), canaries...)
	return r
}

func TestRequireNoSecrets(t *testing.T) {
	if r := require("nowhere-to-be-found"); len(r.errors)+len(r.fatal) > 0 {
		t.Errorf("complained of %v, %v", r.errors, r.fatal)
	}
	if r := require(canary); len(r.errors) != 3 || strings.Contains(strings.Join(r.errors, ""), canary) {
		t.Errorf("complained of %q", r.errors)
	}
	if r := require(); len(r.fatal) != 1 {
		t.Error("no canary was taken for none found")
	}
	if r := require("short"); len(r.fatal) != 1 {
		t.Error("a canary that is found by chance was accepted")
	}
}

// A test of your own workflow: run it with canaries in place of secrets and
// look through everything that the server keeps.
func ExampleRequireNoSecrets() {
	test := func(t *testing.T) {
		t.Helper()
		// history := testsuite.History(t, client, workflowID)
		history := testsuite.ReadHistory(t, "testdata/history.json")
		testsuite.RequireNoSecrets(t, history, "4242-canary-4242")
	}
	_ = test
	fmt.Println(testsuite.FindSecrets(recorded(), canary)[0])
	// Output: 1 WorkflowExecutionStarted input.payloads[1].data
}
