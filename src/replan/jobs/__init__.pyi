# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.assembly.jobs import job_agent as job_agent, job_processor as job_processor
from replan.jobs.job import Job as Job, JobPhase as JobPhase
from replan.jobs.processor import JobProcessor as JobProcessor, ProcessResult as ProcessResult
from replan.jobs.spec.action_spec import ActionSpec as ActionSpec, ParameterSpec as ParameterSpec
from replan.jobs.spec.job_file import read_job_file as read_job_file
from replan.jobs.spec.job_spec import JobCommand as JobCommand, JobSpec as JobSpec
from replan.jobs.spec.slot import Slot as Slot
