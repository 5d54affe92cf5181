# frozen_string_literal: true

# Holds a thread for as long as it is asked to, and says which worker did.
class SleepController < ActionController::API
  # Decimals too: /sleep?ms=0.5 sleeps half a millisecond.
  MILLISECONDS = /\A\d{1,9}(?:\.\d{1,9})?\z/.freeze

  before_action { response.headers['x-worker-pid'] = Process.pid.to_s }

  def show
    ms = params[:ms].to_s
    return refuse unless MILLISECONDS.match?(ms)

    # While it sleeps the thread is taken but the lock of the Ruby VM is not: this is a request that waits for a database.
    sleep(ms.to_f / 1000)
    render plain: 'ok'
  end

  def nothing
    render plain: "GET /sleep?ms=1000 is all that there is\n", status: :not_found
  end

  private

  def refuse
    render plain: "ms must be a number of milliseconds, as in /sleep?ms=1000\n", status: :bad_request
  end
end
