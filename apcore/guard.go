package apcore

import "slices"

// GuardCallChain checks a call chain that already ends with moduleID (apcore
// A20): first its length (CALL_DEPTH_EXCEEDED), then a call back to moduleID
// through another module (CIRCULAR_CALL), then how often it occurs
// (CALL_FREQUENCY_EXCEEDED). A limit below 1 is GENERAL_INVALID_INPUT.
func GuardCallChain(moduleID string, chain []string, maxDepth, maxRepeat int) error {
	if maxDepth < 1 || maxRepeat < 1 {
		return NewError(CodeInvalidInput, "call limits must be at least 1: max_call_depth is %d, max_module_repeat is %d", maxDepth, maxRepeat)
	}
	if len(chain) > maxDepth {
		return NewError(CodeCallDepthExceeded, "call chain of %d modules is deeper than %d", len(chain), maxDepth).
			WithDetail("depth", len(chain)).WithDetail("max_depth", maxDepth).WithDetail("call_chain", anySlice(chain))
	}
	if len(chain) == 0 {
		return nil
	}
	prior := chain[:len(chain)-1]
	if last := lastIndex(prior, moduleID); last >= 0 && last < len(prior)-1 {
		return NewError(CodeCircularCall, "module %q is called again through %q", moduleID, prior[len(prior)-1]).
			WithDetail("module_id", moduleID).WithDetail("call_chain", anySlice(chain))
	}
	if count := occurrences(chain, moduleID); count > maxRepeat {
		return NewError(CodeCallFrequencyExceeded, "module %q stands %d times in the call chain, %d are allowed", moduleID, count, maxRepeat).
			WithDetail("module_id", moduleID).WithDetail("count", count).WithDetail("max_repeat", maxRepeat).WithDetail("call_chain", anySlice(chain))
	}
	return nil
}

func lastIndex(chain []string, id string) int {
	for i, item := range slices.Backward(chain) {
		if item == id {
			return i
		}
	}
	return -1
}

func occurrences(chain []string, id string) int {
	count := 0
	for _, item := range chain {
		if item == id {
			count++
		}
	}
	return count
}
