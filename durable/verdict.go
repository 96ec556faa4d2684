package durable

import (
	"maps"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Repeat says whether an error of a code is worth another attempt.
type Repeat string

// The verdicts. The class of the module always has the last word: what runs at
// most once and may have started is not repeated.
const (
	// RepeatNever: no repetition mends it, whatever the error says of itself.
	RepeatNever Repeat = "never"
	// RepeatNo: not, unless the error itself says that it is retryable.
	RepeatNo Repeat = "no"
	// RepeatYes: yes, unless the error itself says that it is not retryable.
	RepeatYes Repeat = "yes"
	// RepeatByClass: nothing is known of it; a module that repeats is repeated.
	RepeatByClass Repeat = "by class"
)

// Stage says where in a call an error of a code arises, as seen from the module
// that was called. What a nested call returns always comes from within.
type Stage string

// The stages.
const (
	// StageBefore: before the module is handed its inputs.
	StageBefore Stage = "before"
	// StageAfter: from the module itself or after it.
	StageAfter Stage = "after"
	// StageEither: on both sides; the worker reports which it was.
	StageEither Stage = "either"
	// StageOutside: not in a call but where things are set up or decided. A module
	// may still return it.
	StageOutside Stage = "outside"
)

// Verdict is one row of the table of codes.
type Verdict struct {
	Code   apcore.Code
	Repeat Repeat
	Stage  Stage
}

// VerdictOf returns a code's row; an unknown code counts as a module's own.
func VerdictOf(code apcore.Code) Verdict {
	if verdict, known := verdicts[code]; known {
		return Verdict{code, verdict.Repeat, verdict.Stage}
	}
	return Verdict{code, RepeatByClass, StageAfter}
}

// Verdicts returns the row of every code of the standard and of this layer, in
// alphabetical order.
func Verdicts() []Verdict {
	rows := make([]Verdict, 0, len(verdicts))
	for _, code := range slices.Sorted(maps.Keys(verdicts)) {
		rows = append(rows, VerdictOf(code))
	}
	return rows
}

// NeverRetried returns the error types an engine must not retry, sorted, for
// those that take such a list: every code whose verdict is [RepeatNever]. It is a
// new list every time.
func NeverRetried() []string { return slices.Clone(neverRetried) }

// neverRetried is read off the table once, for workflow code must not range over
// a map.
var neverRetried = func() []string {
	var types []string
	for code, verdict := range verdicts {
		if verdict.Repeat == RepeatNever {
			types = append(types, string(code))
		}
	}
	slices.Sort(types)
	return types
}()

// repeats decides whether a failed attempt is worth another one, apart from the
// class: what the error says of itself counts, unless the code forbids it. A
// module that this worker does not know may be known to the next.
func repeats(err *apcore.Error, ownNotFound bool) bool {
	verdict := VerdictOf(err.Code).Repeat
	switch {
	case verdict == RepeatNever:
		return false
	case ownNotFound:
		return true
	case err.Retryable != nil:
		return *err.Retryable
	default:
		return verdict != RepeatNo
	}
}

type row struct {
	Repeat Repeat
	Stage  Stage
}

// verdicts holds every code of the standard and of this layer. The standard calls
// APPROVAL_TIMEOUT and EXECUTION_CANCELLED retryable, which is meant for another
// request; within this call nobody asks again, and nothing goes on.
var verdicts = map[apcore.Code]row{
	apcore.CodeModuleExecuteError:          {RepeatByClass, StageAfter},
	apcore.CodeModuleTimeout:               {RepeatYes, StageEither},
	apcore.CodeInternal:                    {RepeatYes, StageEither},
	apcore.CodeCircuitBreakerOpen:          {RepeatYes, StageBefore},
	apcore.CodeReloadFailed:                {RepeatYes, StageOutside},
	apcore.CodeTaskLimitExceeded:           {RepeatYes, StageOutside},
	apcore.CodeTaskStoreUnavailable:        {RepeatYes, StageOutside},
	apcore.CodeModuleNotFound:              {RepeatNo, StageBefore},
	apcore.CodeModuleDisabled:              {RepeatNo, StageBefore},
	apcore.CodeCallDepthExceeded:           {RepeatNo, StageBefore},
	apcore.CodeCircularCall:                {RepeatNo, StageBefore},
	apcore.CodeCallFrequencyExceeded:       {RepeatNo, StageBefore},
	apcore.CodeContextBinding:              {RepeatNo, StageBefore},
	apcore.CodeInvalidModuleID:             {RepeatNo, StageBefore},
	apcore.CodeInvalidInput:                {RepeatNo, StageBefore},
	apcore.CodeSchemaValidation:            {RepeatNo, StageEither},
	apcore.CodeSchemaUnionNoMatch:          {RepeatNo, StageEither},
	apcore.CodeSchemaUnionAmbiguous:        {RepeatNo, StageEither},
	apcore.CodePipelineAbort:               {RepeatNo, StageEither},
	apcore.CodeStepNotFound:                {RepeatNo, StageEither},
	apcore.CodeMiddlewareChain:             {RepeatNo, StageEither},
	apcore.CodePipelineStep:                {RepeatNo, StageEither},
	apcore.CodeACLDenied:                   {RepeatNever, StageBefore},
	apcore.CodeApprovalDenied:              {RepeatNever, StageBefore},
	apcore.CodeApprovalTimeout:             {RepeatNever, StageBefore},
	apcore.CodeApprovalPending:             {RepeatNever, StageBefore},
	apcore.CodeExecutionCancelled:          {RepeatNever, StageEither},
	apcore.CodeACLRule:                     {RepeatNo, StageOutside},
	apcore.CodeConfigNotFound:              {RepeatNo, StageOutside},
	apcore.CodeConfigInvalid:               {RepeatNo, StageOutside},
	apcore.CodeConfigBindError:             {RepeatNo, StageOutside},
	apcore.CodeConfigMountError:            {RepeatNo, StageOutside},
	apcore.CodeConfigNamespaceDuplicate:    {RepeatNo, StageOutside},
	apcore.CodeConfigNamespaceReserved:     {RepeatNo, StageOutside},
	apcore.CodeConfigEnvPrefixConflict:     {RepeatNo, StageOutside},
	apcore.CodeConfigEnvMapConflict:        {RepeatNo, StageOutside},
	apcore.CodeConfigKeyRestricted:         {RepeatNo, StageOutside},
	apcore.CodeModuleLoadError:             {RepeatNo, StageOutside},
	apcore.CodeDuplicateModuleID:           {RepeatNo, StageOutside},
	apcore.CodeModuleIDConflict:            {RepeatNo, StageOutside},
	apcore.CodeIDTooLong:                   {RepeatNo, StageOutside},
	apcore.CodeInvalidSegment:              {RepeatNo, StageOutside},
	apcore.CodeModuleReloadConflict:        {RepeatNo, StageOutside},
	apcore.CodeStreamingInterfaceMismatch:  {RepeatNo, StageOutside},
	apcore.CodeSchemaNotFound:              {RepeatNo, StageOutside},
	apcore.CodeSchemaParse:                 {RepeatNo, StageOutside},
	apcore.CodeSchemaCircularRef:           {RepeatNo, StageOutside},
	apcore.CodeSchemaMaxDepth:              {RepeatNo, StageOutside},
	apcore.CodeFuncMissingTypeHint:         {RepeatNo, StageOutside},
	apcore.CodeFuncMissingReturnType:       {RepeatNo, StageOutside},
	apcore.CodeBindingInvalidTarget:        {RepeatNo, StageOutside},
	apcore.CodeBindingModuleNotFound:       {RepeatNo, StageOutside},
	apcore.CodeBindingCallableNotFound:     {RepeatNo, StageOutside},
	apcore.CodeBindingNotCallable:          {RepeatNo, StageOutside},
	apcore.CodeBindingFileInvalid:          {RepeatNo, StageOutside},
	apcore.CodeBindingSchemaInference:      {RepeatNo, StageOutside},
	apcore.CodeBindingSchemaMode:           {RepeatNo, StageOutside},
	apcore.CodeBindingStrictSchema:         {RepeatNo, StageOutside},
	apcore.CodePipelineDependency:          {RepeatNo, StageOutside},
	apcore.CodePipelineStepNotFound:        {RepeatNo, StageOutside},
	apcore.CodePipelineHandlerNotSupported: {RepeatNo, StageOutside},
	apcore.CodePipelineConfiguration:       {RepeatNo, StageOutside},
	apcore.CodeStepNameDuplicate:           {RepeatNo, StageOutside},
	apcore.CodeStepNotRemovable:            {RepeatNo, StageOutside},
	apcore.CodeStepNotReplaceable:          {RepeatNo, StageOutside},
	apcore.CodeStrategyNotFound:            {RepeatNo, StageOutside},
	apcore.CodeReaperAlreadyRunning:        {RepeatNo, StageOutside},
	apcore.CodeSysModulesDisabled:          {RepeatNo, StageOutside},
	apcore.CodeSysModuleRegistration:       {RepeatNo, StageOutside},
	apcore.CodeVersionIncompatible:         {RepeatNo, StageOutside},
	apcore.CodeVersionConstraintInvalid:    {RepeatNo, StageOutside},
	apcore.CodeCircularDependency:          {RepeatNo, StageOutside},
	apcore.CodeDependencyNotFound:          {RepeatNo, StageOutside},
	apcore.CodeDependencyVersionMismatch:   {RepeatNo, StageOutside},
	apcore.CodeErrorCodeCollision:          {RepeatNo, StageOutside},
	apcore.CodeErrorFormatterDuplicate:     {RepeatNo, StageOutside},
	apcore.CodeInvalidParentID:             {RepeatNo, StageOutside},
	apcore.CodeNotImplemented:              {RepeatNo, StageOutside},

	CodeOutcomeUnknown:    {RepeatNever, StageAfter},
	CodeNestedApproval:    {RepeatNever, StageAfter},
	CodePayloadTooLarge:   {RepeatNever, StageEither},
	CodeTokenRefused:      {RepeatNever, StageBefore},
	CodeBuildMismatch:     {RepeatNever, StageBefore},
	CodeNameTaken:         {RepeatNever, StageOutside},
	CodeKeyTaken:          {RepeatNever, StageOutside},
	CodeNoStandalone:      {RepeatNever, StageOutside},
	CodeDecisionUnknown:   {RepeatNever, StageOutside},
	CodeDecisionDuplicate: {RepeatNever, StageOutside},
	CodeDecisionLate:      {RepeatNever, StageOutside},
	CodeDecisionClosed:    {RepeatNever, StageOutside},
	CodeDecisionInvalid:   {RepeatNever, StageOutside},
	CodeDecisionForbidden: {RepeatNever, StageOutside},
	CodeDecisionSignature: {RepeatNever, StageOutside},
	CodeRunClosed:         {RepeatNever, StageOutside},
	CodeRunNotFound:       {RepeatNever, StageOutside},
	CodeNoWorker:          {RepeatNever, StageOutside},
	CodeTaskEnded:         {RepeatNever, StageOutside},
	CodeTaskExpired:       {RepeatNever, StageOutside},
	CodeGrantMissing:      {RepeatNever, StageBefore},
	CodeGrantSeal:         {RepeatNever, StageBefore},
	CodeGrantApproval:     {RepeatNever, StageBefore},
	CodeGrantCall:         {RepeatNever, StageBefore},
	CodeGrantModule:       {RepeatNever, StageBefore},
	CodeGrantVersion:      {RepeatNever, StageBefore},
	CodeGrantSchema:       {RepeatNever, StageBefore},
	CodeGrantArguments:    {RepeatNever, StageBefore},
	CodeGrantRequester:    {RepeatNever, StageBefore},
	CodeGrantExpired:      {RepeatNever, StageBefore},
}
