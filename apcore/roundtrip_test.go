package apcore_test

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// parcel holds what tends to change its type over JSON.
type parcel struct {
	Int      int64               `json:"int"`
	Uint     uint64              `json:"uint"`
	Big      *big.Int            `json:"big"`
	Float    float64             `json:"float"`
	Text     string              `json:"text"`
	Bytes    []byte              `json:"bytes"`
	Set      map[string]struct{} `json:"set"`
	List     []int64             `json:"list"`
	Pointers []*string           `json:"pointers"`
	Maybe    *string             `json:"maybe"`
	Left     *string             `json:"left,omitempty"`
	At       time.Time           `json:"at"`
	ID       uuid.UUID           `json:"id"`
	Deep     map[string][]parcel `json:"deep,omitempty"`
}

func drawParcel(t *rapid.T, depth int) parcel {
	text := rapid.StringOfN(rapid.Rune(), 0, 6, -1)
	p := parcel{
		Int: rapid.Int64().Draw(t, "int"), Uint: rapid.Uint64().Draw(t, "uint"), Float: rapid.Float64Range(-1e300, 1e300).Draw(t, "float"),
		Big:  new(big.Int).Mul(big.NewInt(rapid.Int64().Draw(t, "big")), big.NewInt(rapid.Int64().Draw(t, "big"))),
		Text: text.Draw(t, "text"), Bytes: rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes"),
		Set: map[string]struct{}{}, List: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "list"),
		Pointers: rapid.SliceOfN(rapid.Ptr(text, true), 0, 3).Draw(t, "pointers"),
		Maybe:    rapid.Ptr(text, true).Draw(t, "maybe"), Left: rapid.Ptr(text, true).Draw(t, "left"),
		At: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "at"), rapid.Int64Range(0, 999).Draw(t, "ns")).UTC(),
		ID: uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
	}
	for _, member := range rapid.SliceOfN(text, 0, 3).Draw(t, "set") {
		p.Set[member] = struct{}{}
	}
	if depth > 0 && rapid.Bool().Draw(t, "deeper") {
		p.Deep = map[string][]parcel{text.Draw(t, "key"): {drawParcel(t, depth-1)}}
	}
	return p
}

var sameParcel = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b *big.Int) bool { return a == b || a != nil && b != nil && a.Cmp(b) == 0 })}

// Pitfall 39: numbers beyond 2^53, bytes, sets, absent and empty things and every
// character survive a call, through a typed module and through an untyped one,
// and a nested call from one to the other.
func TestNothingChangesItsType(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	must(t, apcore.Register(h.registry, "typed", func(_ context.Context, in parcel) (parcel, error) { return in, nil }, apcore.Spec{Description: "Echoes"}))
	must(t, apcore.Register(h.registry, "nested", func(ctx context.Context, in parcel) (parcel, error) {
		return apcore.Call[parcel](ctx, "typed", in)
	}, apcore.Spec{Description: "Asks for an echo"}))
	h.module("untyped", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) { return in, nil })
	rapid.Check(t, func(t *rapid.T) {
		want := drawParcel(t, 2)
		text, err := apcore.EncodeJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		inputs, err := apcore.DecodeObject(text)
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := apcore.EncodeJSON(inputs)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"typed", "nested", "untyped"} {
			output, err := h.Call(t.Context(), id, inputs, nil)
			if err != nil {
				t.Fatalf("%s: %v %v", id, err, apcore.AsError(err).Details)
			}
			written, err := apcore.EncodeJSON(output)
			if err != nil {
				t.Fatal(err)
			}
			var got parcel
			if err := json.Unmarshal(written, &got); err != nil {
				t.Fatalf("%s: %s: %v", id, written, err)
			}
			if diff := cmp.Diff(want, got, sameParcel); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", id, diff)
			}
			if id == "untyped" && string(written) != string(canonical) {
				t.Fatalf("an untyped module got %s\nand gave %s", canonical, written)
			}
		}
	})
}

// Pitfall 39: what is empty and what is not there stay apart, where JSON can tell
// them apart; a nil list or set in an output means an empty one.
func TestAbsentAndEmpty(t *testing.T) {
	type thing struct {
		Maybe *string         `json:"maybe"`
		Left  *string         `json:"left,omitempty"`
		List  []string        `json:"list"`
		Set   map[string]bool `json:"set"`
		Bytes []byte          `json:"bytes"`
		Text  string          `json:"text"`
	}
	h := newHost(t, apcore.ExecutorOptions{})
	must(t, apcore.Register(h.registry, "m", func(_ context.Context, in thing) (thing, error) { return in, nil }, apcore.Spec{Description: "Echoes"}))
	for given, want := range map[string]string{
		`{"list":[],"set":{},"bytes":"","text":""}`:                                                 `{"bytes":"","list":[],"maybe":null,"set":{},"text":""}`,
		`{"maybe":null,"left":null,"list":[],"set":{},"bytes":"","text":""}`:                        `{"bytes":"","list":[],"maybe":null,"set":{},"text":""}`,
		`{"maybe":"","left":"","list":[""],"set":{"":false},"bytes":"AA==","text":"\u0000\u2028😀"}`: "{\"bytes\":\"AA==\",\"left\":\"\",\"list\":[\"\"],\"maybe\":\"\",\"set\":{\"\":false},\"text\":\"\\u0000\u2028😀\"}",
	} {
		output, err := h.Call(t.Context(), "m", parseObject(t, given), nil)
		must(t, err)
		got, err := apcore.EncodeJSON(output)
		must(t, err)
		if diff := cmp.Diff(string(parsedAgain(t, want)), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", given, diff)
		}
	}
	for _, refused := range []string{`{"list":null,"set":{},"bytes":"","text":""}`, `{"list":[],"set":{},"bytes":"","text":null}`, `{"list":[],"set":{},"text":""}`} {
		if _, err := h.Call(t.Context(), "m", parseObject(t, refused), nil); apcore.CodeOf(err) != apcore.CodeSchemaValidation {
			t.Errorf("%s: %v", refused, err)
		}
	}
}

func parsedAgain(t *testing.T, text string) []byte {
	t.Helper()
	again, err := apcore.EncodeJSON(parseObject(t, text))
	must(t, err)
	return again
}
